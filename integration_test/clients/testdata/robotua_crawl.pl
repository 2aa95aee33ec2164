# SPDX-License-Identifier: Apache-2.0
#
# A small crawler on LWP::RobotUA, which reads robots.txt by itself.
use strict;
use warnings;
use HTML::LinkExtor;
use JSON::PP;
use LWP::RobotUA;
use URI;

sub crawl {
    my ($job) = @_;
    my $ua = LWP::RobotUA->new(agent => $job->{agent}, from => 'webmaster@example.com', timeout => 20);
    $ua->delay(0);
    $ua->proxy('http', $job->{proxy}) if $job->{proxy};
    my @queue = @{$job->{urls}};
    my %seen = map { $_ => 1 } @queue;
    my $site = URI->new($queue[0])->host_port;
    while (@queue && keys %seen < 500) {
        my $url = shift @queue;
        my $response = $ua->get($url);
        next unless $response->is_success && $response->content_type eq 'text/html';
        my $links = HTML::LinkExtor->new;
        $links->parse($response->decoded_content)->eof;
        for my $link ($links->links) {
            my ($tag, %attributes) = @$link;
            next unless $tag =~ /^(?:a|link|img)$/;
            for my $to (map { URI->new_abs($_, $url) } @attributes{grep { exists $attributes{$_} } qw(href src)}) {
                $to->fragment(undef);
                next unless $to->scheme eq 'http' && $to->host_port eq $site && !$seen{$to}++;
                push @queue, "$to";
            }
        }
    }
}

crawl($_) for @{decode_json(do { local $/; <STDIN> })};
